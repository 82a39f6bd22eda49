#pragma once

#include <string_view>

/// The files of strait/report/page and the chart library, as CMake embeds them.
namespace strait::report::page {

extern const std::string_view kHtml;     ///< the frame of the page
extern const std::string_view kTable;    ///< the part of the page that is repeated for each table
extern const std::string_view kCrossed;  ///< a table of one key against another
extern const std::string_view kStyle;    ///< style sheet
extern const std::string_view kErrors;   ///< script that runs first and shows what goes wrong in the others
extern const std::string_view kScript;   ///< script that draws the charts
extern const std::string_view kChartLibrary;  ///< Chart.js

}  // namespace strait::report::page
